// Package timers says what is due when. It does not know what it is.
package timers
