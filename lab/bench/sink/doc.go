// Package sink is the server that all programs of a comparison send lines to: it understands what each of them sends,
// acknowledges it, and notes what came, when. It keeps nothing on a disk.
package sink
