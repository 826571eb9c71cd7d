// Package web is the reference server's pages: a list of sessions, and one session to read. Rendered on the server,
// no script, nothing loaded from elsewhere.
//
// It reads through server.Catalog and knows no database. What a record means it guesses just well enough to show.
package web
