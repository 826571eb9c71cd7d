// Package kit is the harness of the end-to-end tests: it builds the programs, runs them, and waits for what they do. It
// does not know what is tested. Only packages below e2e import it.
package kit
