// Package delivery measures ccship beside programs that ship logs: `lab delivery`. It has tests only. The folder setups
// has how each program is set up.
package delivery
