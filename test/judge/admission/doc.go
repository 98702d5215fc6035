// Package admission asks the API server's own evaluation of ValidatingAdmissionPolicies
// (k8s.io/apiserver, in a process of its own) what units/admission-policy.yaml makes of a
// request, thousands of times a minute and without a control plane. It draws certificate
// requests, hostile and honest ones, byte by byte, as no library would write them.
//
// It refuses to say what the cluster would do after an approval, and holds no second reading
// of the policies: test/suite/services sends a sample of the same requests to a real API
// server.
package admission
