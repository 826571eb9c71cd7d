// Package corpus makes conversations to measure with: invented ones, in the shapes, sizes and mixture of records that
// Claude Code writes, or those of a folder, repeated with other ids. The same seed, Go release and size give the same
// bytes. It knows nothing of servers.
package corpus
