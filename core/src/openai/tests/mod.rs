//! Of the tables as a whole, rather than of one of their parts.

mod documentation;
