// Package machine plays worker machines: each executes the join section of its
// user data with /bin/sh and then does, with its own credentials and over the real
// wire, what kubeadm join and the kubelet do. It finds the cluster by bootstrap
// token (cluster-info, its signature, the CA pin), gets a client certificate,
// registers a Node, heartbeats, asks for a serving certificate and serves TLS with
// it, and runs the pods that are bound to it.
//
// No container runs and no packet leaves loopback: a machine's addresses are data.
// Whoever wants to talk to its kubelet finds a loopback port in the Node's
// annotation Annotation, or uses DialServing.
//
// The package refuses to be kinder than a real machine: it takes nothing from the
// test but what the cloud knows (identity, capacity, user data, metadata endpoint),
// never uses an administrator's credentials, approves nothing, and cleans nothing
// up in Kubernetes when a machine dies.
package machine
