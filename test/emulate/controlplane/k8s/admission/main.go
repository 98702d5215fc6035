// Package admission is the API server's own evaluation of ValidatingAdmissionPolicies as a
// filter between two pipes: it reads the manifests that it is given and then, a JSON value
// each, requests from standard input, and writes which policies refuse them and what the
// expressions cost.
//
// It lives in the module that pins the control plane, so that the evaluation is that of the
// kube-apiserver that the tests run, and imports nothing of the product. It refuses to know
// more than a request says: no other object is looked up, and its authorizer allows what
// the flag -allow names and nothing else.
package admission

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Request is one call of a client as its admission sees it.
type Request struct {
	User                                  string
	Operation                             string // CREATE, UPDATE, DELETE
	Group, Version, Resource, Subresource string
	Namespace, Name                       string
	Object, OldObject                     *unstructured.Unstructured
	Params                                []*unstructured.Unstructured // all objects that bindings may choose from
	Costs                                 bool                         // asks for Answer.Cost, which takes as long again
	First                                 bool                         // asks for no more than the first policy that refuses
}

// Answer says what the policies make of a Request.
type Answer struct {
	Denials []Denial
	Cost    map[string]int64 // by policy, the dearest of its parameters
	Error   string
}

// Denial is one validation that is false or fails.
type Denial struct{ Policy, Message string }

// Main answers the requests of standard input; its flags are the command line's.
func Main() {
	manifests := flag.String("manifests", "", "the file with policies and bindings")
	allow := flag.String("allow", "", "what the authorizer allows: RESOURCE/NAME, with commas between")
	compatible := flag.String("compatible", "", "a version (1.29): only compile what an API server accepts that is to be compatible with it")
	flag.Parse()
	if err := run(*manifests, *allow, *compatible); err != nil {
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1)
	}
}

func run(manifests, allow, compatible string) error {
	set, err := load(manifests)
	if err != nil {
		return err
	}
	if compatible != "" {
		return set.accepted(compatible)
	}
	if err := set.compile(); err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var r Request
		if err := in.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request: %w", err)
		}
		answer, err := set.judge(context.Background(), &r, allowing(allow))
		if err != nil {
			answer.Error = err.Error()
		}
		if err := out.Encode(answer); err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
	}
}

// allowing is an authorizer that allows resources by their names.
type allowing string

func (a allowing) Authorize(_ context.Context, at authorizer.Attributes) (authorizer.Decision, string, error) {
	if slices.Contains(strings.Split(string(a), ","), at.GetResource()+"/"+at.GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}
