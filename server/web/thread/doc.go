// Package thread builds the items of a conversation from stored lines: prompts, answers, tool calls with their
// results, compactions and rewinds, and the same as Markdown. It reads through a server.Snapshot, and does not know
// who reads, how a page looks or where a line is stored.
package thread
