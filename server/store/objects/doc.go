// Package objects keeps immutable objects by name, in S3-compatible storage or in a folder. A name is written once. The
// package does not know what objects contain, or who needs them.
package objects
