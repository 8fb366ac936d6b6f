/* A library that answers as NVIDIA's does, for the tests of the agent. Names and codes of the calls are
 * those of NVIDIA's "NVML API Reference". What it answers is chosen by the variable FAKE_NVML. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OK = 0, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6, GPU_IS_LOST = 15, UNKNOWN = 999 };

/* Devices are numbers: GPUs from 1, their MIG instances from 100 times that. */
typedef size_t Device;

static int is(const char *behaviour) {
    const char *wanted = getenv("FAKE_NVML");
    return wanted != NULL && strcmp(wanted, behaviour) == 0;
}

int nvmlInit_v2(void) {
    if (is("hang")) for (;;) sleep(1000);
    return is("unknown") ? UNKNOWN : OK;
}

int nvmlShutdown(void) { return OK; }

const char *nvmlErrorString(int code) { (void)code; return "Unknown Error"; }

int nvmlSystemGetDriverVersion(char *text, unsigned size) {
    snprintf(text, size, "550.54.15");
    return OK;
}

int nvmlDeviceGetCount_v2(unsigned *count) {
    *count = 2;
    return OK;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device *device) {
    if (is("lost") && index == 1) return GPU_IS_LOST;
    *device = index + 1;
    return OK;
}

int nvmlDeviceGetUUID(Device device, char *text, unsigned size) {
    snprintf(text, size, device < 100 ? "GPU-%zu" : "MIG-%zu", device);
    return OK;
}

int nvmlDeviceGetName(Device device, char *text, unsigned size) {
    const char *name = is("gb10") ? "NVIDIA GB10" : "NVIDIA A100-SXM4-40GB";
    const char *profile = device < 100 ? "" : device % 100 == 2 ? " MIG 1g.5gb+me" : " MIG 3g.20gb";
    snprintf(text, size, "%s%s", name, profile);
    return OK;
}

int nvmlDeviceGetCudaComputeCapability(Device device, int *major, int *minor) {
    (void)device;
    *major = 8;
    *minor = 0;
    return OK;
}

struct Memory { unsigned version; unsigned long long total, reserved, free, used; };

int nvmlDeviceGetMemoryInfo_v2(Device device, struct Memory *memory) {
    unsigned long long mebibytes = device < 100 ? 40960 : device % 100 == 2 ? 4864 : 19968;
    if (is("gb10")) return NOT_SUPPORTED;
    memory->total = mebibytes << 20;
    memory->used = 1024ull << 20;
    memory->free = memory->total - memory->used;
    memory->reserved = 0;
    return OK;
}

struct Utilization { unsigned gpu, memory; };

int nvmlDeviceGetUtilizationRates(Device device, struct Utilization *rates) {
    if (is("mig")) return NOT_SUPPORTED;
    rates->gpu = 10 * (unsigned)device;
    rates->memory = 0;
    return OK;
}

int nvmlDeviceGetTemperature(Device device, int sensor, unsigned *degrees) {
    (void)device;
    (void)sensor;
    *degrees = 50;
    return is("mig") ? NO_PERMISSION : OK;
}

int nvmlDeviceGetMigMode(Device device, unsigned *current, unsigned *pending) {
    *current = *pending = (is("mig") && device == 1) || is("mig without instances");
    return is("gb10") ? NOT_SUPPORTED : OK;
}

int nvmlDeviceGetMaxMigDeviceCount(Device device, unsigned *count) {
    (void)device;
    *count = 7;
    return OK;
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device *instance) {
    /* Numbers in use need not follow one another. */
    if (is("mig without instances") || (index != 0 && index != 2 && index != 5)) return NOT_FOUND;
    *instance = 100 * device + index;
    return OK;
}
