// Package kit is the harness of tests that run programs: it reads what a run is asked for, builds the programs, runs
// them, writes what they read, and waits for what they do. It does not know what is tested. Only tests, and the program
// lab, import it.
package kit
