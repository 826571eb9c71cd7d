// Package arena is the memory that a job of the tailer reads into. It does not know what is read.
package arena
