// Package server is the reference server: it takes the lines of transcripts over HTTP, keeps their bytes as they
// are, and gives back sessions, entries, whole files and digests computed from what is stored.
//
// It knows the wire and what a generation's view is. It does not know how bytes are kept (Store, implemented in
// server/store) or what a page looks like (a Viewer, implemented in server/web).
//
// All keys of one server see everything on it: a server belongs to one person or one team.
package server
