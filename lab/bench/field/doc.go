// Package field measures ccship next to the programs that people would use instead: `lab field`. It has tests
// only. The folder setups has how each program is set up, collector is one of them, built from its modules.
package field
