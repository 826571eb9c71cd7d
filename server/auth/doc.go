// Package auth identifies callers: by API key, by login or by one-time link. It limits guesses and makes keys and
// links. It knows requests only by their headers and address, and keeps nothing itself: everything is in the store, so
// that it survives a restart and holds for every server on one database.
package auth
