// Package limit bounds what one client, and all together, can take of the server: connections, requests in progress,
// memory and time of request bodies, and the searches, sums and lists of the store, which all readers go through.
package limit
