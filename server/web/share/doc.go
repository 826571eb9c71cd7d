// Package share shows one session, and its agents' transcripts, to whoever has a link to it: without a login, only to
// be read, with secrets masked. Users make and end such links here. It knows no other page.
package share
