package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVersions: publishers' checksums replace and extend the table; one that disagrees or
// cannot be read leaves it as it was.
func TestVersions(t *testing.T) {
	one, two := strings.Repeat("1", 64), strings.Repeat("2", 64)
	wrong := false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case wrong:
			http.Error(w, "away", http.StatusBadGateway)
		case strings.HasSuffix(r.URL.Path, "/runc.sha256sum"):
			_, _ = w.Write([]byte(two + "  runc.arm64\n" + one + "  runc.amd64\n"))
		case strings.HasSuffix(r.URL.Path, ".sha256"):
			_, _ = w.Write([]byte(one))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	file := filepath.Join(t.TempDir(), "versions.txt")
	old := "# head\nkubelet v1.36.3 amd64 " + one + " kops\n"
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(old)
	if err := run(t.Context(), file, s.URL+"/", []string{"runc=v1.4.3"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	want := "# head\nkubelet v1.36.3 amd64 " + one + " publisher\nrunc v1.4.3 amd64 " + one + " publisher\nrunc v1.4.3 arm64 " + two + " publisher\n"
	if err != nil || string(got) != want {
		t.Errorf("%v\n%s", err, got)
	}
	for _, c := range []struct{ table, arg, want string }{
		{"kubelet v1.36.3 amd64 " + two + " kops\n", "runc=v1.4.3", "find out which is wrong"},
		{old, "containerd=v2.3.4", "404"},
		{old, "etcd=v3", "give NAME=VERSION"},
	} {
		write(c.table)
		if err := run(t.Context(), file, s.URL+"/", []string{c.arg}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.arg, err, c.want)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != c.table {
			t.Errorf("the table was changed: %v %s", err, got)
		}
	}
	wrong = true
	write(old)
	if err := run(t.Context(), file, s.URL+"/", nil); err == nil || !strings.Contains(err.Error(), "502") {
		t.Error(err)
	}
}
