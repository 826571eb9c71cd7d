package sys

// noWait is nothing: no pipe is in a folder.
const noWait = 0
