// Package past proves that the beginning of a file is what was read of it before: by a cursor, and by marks on the way
// to it.
package past
