// Package man writes a program's manual page from what the program says with --help, of itself and of every subcommand,
// and from a few sections that help does not have. It looks at the program from outside, so that no generator is linked
// into it, and fails on help it does not understand rather than leave something out.
package man
