// Package join tries the join values of the whole agent: the built binary keeps tokens on a
// real control plane and publishes them to an emulated AWS, and machines join with them.
package join
