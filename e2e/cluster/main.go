// The control plane for tests: etcd and three programs of Kubernetes in one binary, since they share most
// of their code. The first argument, or the name it is called by, chooses which one it is; the other
// arguments are that program's own. Built once and kept outside the checkout by `cargo xtask e2e build`.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Called as each program's own main would call it.
var programs = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          func() { run(apiserver.NewAPIServerCommand()) },
	"kube-controller-manager": func() { run(controllermanager.NewControllerManagerCommand()) },
	"kube-scheduler":          func() { run(scheduler.NewSchedulerCommand()) },
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, found := programs[name]; !found && len(os.Args) > 1 {
		// Each program reads os.Args itself and shall not see the word that chose it.
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	program, found := programs[name]
	if !found {
		fmt.Fprintf(os.Stderr, "%q is none of %s: name one of them as the first argument\n", name, names())
		os.Exit(2)
	}
	if os.Getenv("EXIT_WITH_STDIN") != "" {
		go exitWithStdin()
	}
	program()
}

// Whoever starts this for a test holds the other end of the pipe: however the test ends, nothing is left.
func exitWithStdin() {
	io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

func run(command *cobra.Command) {
	os.Exit(cli.Run(command))
}

func names() string {
	var known []string
	for name := range programs {
		known = append(known, name)
	}
	slices.Sort(known)
	return strings.Join(known, ", ")
}
