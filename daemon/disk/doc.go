// Package disk says which disks tell of every change in a folder. It does not know who listens.
package disk
