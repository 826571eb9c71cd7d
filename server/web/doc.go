// Package web serves the pages: the list of sessions, a conversation to read and to follow, the details of each line,
// search, usage, accounts. The server renders them; a small script adds keys and following. Pages load nothing from
// other hosts, and nothing in a conversation is ever run.
//
// It reads through server.Library and knows no database. Package transcript interprets records; package markup turns
// text into HTML.
package web
