package apierror_test

import (
	"fmt"
	"net"
	"net/url"

	"github.com/autoscaler-agent/autoscaler-agent/internal/apierror"
)

// Two requests that fail for one reason have one text.
func ExampleExplain() {
	for _, path := range []string{"/api/v1/nodes", "/api/v1/pods"} {
		text, remedy := apierror.Explain(&url.Error{Op: "Get", URL: "https://k8s.example.com:6443" + path, Err: &net.DNSError{Name: "k8s.example.com", Err: "no such host"}})
		fmt.Println(text)
		fmt.Println(remedy)
	}
	// Output:
	// the API server's name is not known: k8s.example.com
	// correct `server` in the kubeconfig, or this machine's DNS
	// the API server's name is not known: k8s.example.com
	// correct `server` in the kubeconfig, or this machine's DNS
}
