// Package server holds the words and the contracts of the reference server: what a stream, a generation and a view are,
// who may see what, and what a store must do. It knows neither HTTP (server/api, server/web) nor how bytes are kept
// (server/store).
//
// Every key belongs to a user. An owner sees and manages everything; a member sees its own sessions and those shared
// with it; a viewer sees only what is shared with it. What a user may not see does not exist for that user.
package server
