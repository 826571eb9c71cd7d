// Package gauge measures processes from outside: processor time, bytes written and memory of programs and of all that
// they started, those that have ended included. It reads /proc, so it measures on Linux only.
package gauge
