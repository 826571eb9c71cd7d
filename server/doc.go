// Package server is the reference server: it takes the lines of transcripts over HTTP, keeps their bytes as they
// are, and gives back sessions, entries, whole files and digests computed from what is stored.
//
// It knows the wire and what a generation's view is. It does not know how bytes are kept (Store, implemented in
// server/store) or what a page looks like (a Viewer, implemented in server/web).
//
// Every key belongs to a user. An owner sees and manages everything, a member sees what is its own and what is shared
// with it, a viewer only what is shared. What a user may not see is not there.
package server
