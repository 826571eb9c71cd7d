// Package timeline derives from a transcript what happened when: prompts, compactions, cleared contexts, rewinds,
// documents, agents, errors and long tool calls, each with its time and how long it took. It knows neither files nor
// servers.
package timeline
