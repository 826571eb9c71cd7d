// Package limit bounds what one client, and all together, can take of the server: connections, requests in progress,
// and the memory and time of request bodies. It does not know what a request is for.
package limit
