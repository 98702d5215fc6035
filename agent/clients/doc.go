// Package clients makes the clients that the configuration asks for: of the API server,
// each kind of call with rates of its own, and of the clouds. The running agent and the
// commands that a person types use the same ones.
//
// It refuses to call anything: a client that is made has not been tried.
package clients
