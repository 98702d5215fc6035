package main

import (
	"bytes"
	"os"
	"strings"
	"testing"
)

// TestOpenStackRules: the command prints what the providers' pages show.
func TestOpenStackRules(t *testing.T) {
	print := func(args ...string) string {
		var out, errout bytes.Buffer
		if code := execute(t.Context(), append([]string{"openstack-rules"}, args...), &out, &errout); code != exitOK {
			t.Fatalf("%v: code %d, %s", args, code, errout.String())
		}
		return out.String()
	}
	for provider, page := range map[string]string{"nova": "nova.md", "magnum": "magnum.md"} {
		text, err := os.ReadFile("../../docs/providers/" + page)
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "```json\n")
		shown, _, _ := strings.Cut(rest, "```")
		if got := print(provider); got != shown {
			t.Errorf("%s shows\n%sthe command prints\n%s", page, shown, got)
		}
	}
	if print() != print("nova") {
		t.Error("nova is not the default")
	}
	const action = `{"service": "compute", "method": "POST", "path": "/v2.1/servers/*/action"}`
	if with := print("--console"); !strings.Contains(with, action) || strings.Contains(print(), "action") {
		t.Errorf("--console: %s", with)
	}
	for _, args := range [][]string{{"heat"}, {"nova", "magnum"}, {"magnum", "--console"}} {
		var out, errout bytes.Buffer
		if code := execute(t.Context(), append([]string{"openstack-rules"}, args...), &out, &errout); code != exitUsage || out.Len() > 0 {
			t.Errorf("%v: code %d, %q", args, code, out.String())
		}
	}
}
