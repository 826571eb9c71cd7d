// Package project finds out what a working directory says about where its lines go. It reads the .codetracker folder of
// the hook that preceded ccship (opt-out, server, credentials, last line sent), and the git remote, which tells one
// team's clones of a project from another's. It reads a few small files, writes none and starts no process.
package project
