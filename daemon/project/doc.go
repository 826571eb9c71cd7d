// Package project knows what a working directory says about where its lines go: the .codetracker folder of the hook
// that did this work before (opt-out, server, credentials, the place it stopped at) and the git remote that tells
// one team's clones of a project from another's. It reads a few small files, never writes one, and starts no process.
package project
