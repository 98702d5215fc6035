// Package kube has the typed clients and the informers of the API groups that the agent
// uses, over client-go's REST client. client-go's own clientset links and registers every
// API group, which was a tenth of the agent's memory; the type of a kind's client here is
// the part of client-go's that the agent uses, so that a test may put client-go's fake in
// its place (kubetest).
//
// It refuses kinds that nothing reads or writes, and to decide when to call.
package kube
