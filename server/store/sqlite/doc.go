// Package sqlite is a store in one file. One goroutine writes at a time, in groups of batches; readers see one moment
// of the database each. It also has the backup of such a file and its restore.
package sqlite
