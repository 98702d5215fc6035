package controlplane

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/autoscaler-agent/autoscaler-agent/userdata"
)

// TestMinors: every minor that user data can be made for can be built, and make e2e-versions
// goes through all of them.
func TestMinors(t *testing.T) {
	p, err := readPins(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var want, have []string
	for n := userdata.OldestMinor; n <= userdata.NewestMinor; n++ {
		want = append(want, fmt.Sprintf("1.%d", n))
	}
	for _, m := range minors {
		have = append(have, majorMinor(m.version))
	}
	have = append(have, p.minor())
	if got, want := strings.Join(have, " "), strings.Join(want, " "); got != want {
		t.Errorf("%s can be built, and user data is made for %s", got, want)
	}
	makefile, err := os.ReadFile("../../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if line := "KUBERNETES ?= " + strings.Join(want, " ") + "\n"; !strings.Contains(string(makefile), line) {
		t.Errorf("the Makefile lacks the line %s", line)
	}
}

func TestOtherMinor(t *testing.T) {
	for _, c := range []struct{ asked, want, err string }{
		{"", "", ""},
		{"1.36", "", ""},
		{"1.30", "v1.30.14", ""},
		{"v1.30", "v1.30.14", ""},
		{"1.29", "", `the programs of Kubernetes "1.29" cannot be built: use one of 1.30, 1.31`},
		{"1.30.14", "", "cannot be built"},
	} {
		m, err := otherMinor(c.asked, "1.36")
		got := ""
		if m != nil {
			got = m.version
		}
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %q, %v", c.asked, got, err)
		}
	}
}

// TestModuleText: only what Kubernetes takes from its staging directory gets its release.
func TestModuleText(t *testing.T) {
	got := (&minor{"v1.30.14", map[string]string{"legacy-cloud-providers": "v0.30.2"}}).moduleText(`module k8s.io/kubernetes

go 1.22.0

require (
	k8s.io/api v0.0.0
	k8s.io/klog/v2 v2.120.1
	k8s.io/utils v0.0.0-20230726121419-3b25d923346b
	k8s.io/legacy-cloud-providers v0.0.0 // indirect
)

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/legacy-cloud-providers => ./staging/src/k8s.io/legacy-cloud-providers
)
`)
	want := `module example.net/kubernetes

require k8s.io/kubernetes v1.30.14

go 1.22.0

require (
	k8s.io/api v0.30.14
	k8s.io/klog/v2 v2.120.1
	k8s.io/utils v0.0.0-20230726121419-3b25d923346b
	k8s.io/legacy-cloud-providers v0.30.14 // indirect
)

replace (
	k8s.io/api => k8s.io/api v0.30.14
	k8s.io/legacy-cloud-providers => k8s.io/legacy-cloud-providers v0.30.2
)
`
	if got != want {
		t.Errorf("got:\n%s", got)
	}
}
