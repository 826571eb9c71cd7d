// Package e2e tests ccship from outside: it builds both binaries, gives them a home of their own, writes transcripts
// as Claude Code does and looks at what the servers have in the end. It imports none of the other packages; the types
// it reads answers into are its own, so a change of the wire or of the command line shows here first.
//
// It also keeps the plan of packages: which one may import which, and which may use which outside module.
package e2e
