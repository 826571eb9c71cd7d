// Package web is the server's pages: the list of sessions, a conversation to read and to follow, what is behind each of
// its lines, search, usage, accounts. Rendered on the server; the little script there is adds keys and following.
// Nothing is loaded from elsewhere, and nothing in a conversation is ever run.
//
// It reads through server.Library and knows no database. What a record means it asks package transcript; how text
// becomes HTML, package markup.
package web
