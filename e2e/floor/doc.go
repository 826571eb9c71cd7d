// Package floor sends transcripts with no durability at all: the least that any program does that reads, validates and
// posts lines. What a program costs is compared with it.
package floor
