package provider_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/agent/provider"
)

func TestErrorsInATree(t *testing.T) {
	a := &provider.Error{Op: "read", Group: "a", Kind: provider.Denied, Err: errors.New("no"), Remedy: "do this"}
	b := &provider.Error{Op: "read", Group: "b", Instance: "i", Kind: provider.Transient}
	tree := fmt.Errorf("round 7: %w", errors.Join(a, errors.New("plain"), errors.Join(b)))
	if list := provider.Errors(tree); len(list) != 2 || list[0] != a || list[1] != b {
		t.Errorf("%v", list)
	}
	if provider.KindOf(tree) != provider.Denied || provider.KindOf(nil) != provider.Other || provider.Errors(nil) != nil {
		t.Error("kinds")
	}
	if got := a.Error(); got != "read a: denied: no (do this)" {
		t.Error(got)
	}
	if got := b.Error(); got != "read b i: transient" {
		t.Error(got)
	}
}
