package leader

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestKubeconfig: the person who ran the script gets the file with mode 0600, nothing that is there is written over, and
// a link that the person made leads root nowhere.
func TestKubeconfig(t *testing.T) {
	for name, c := range map[string]struct {
		before    map[string]string // files of the home directory
		link      string            // where .kube leads
		want, say string
	}{
		"none":          {want: "the cluster's\n"},
		"this one":      {before: map[string]string{".kube/config": "the cluster's\n"}, want: "the cluster's\n"},
		"another's":     {before: map[string]string{".kube/config": "another's\n"}, want: "another's\n", say: "is there already and stays"},
		"a link to /no": {link: "/proc/no", say: "warning reason=kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			admin := filepath.Join(t.TempDir(), "admin.conf")
			write := func(file, text string) {
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(admin, "the cluster's\n")
			for file, text := range c.before {
				write(filepath.Join(home, file), text)
			}
			if c.link != "" {
				if err := os.Symlink(c.link, filepath.Join(home, ".kube")); err != nil {
					t.Fatal(err)
				}
			}
			// runuser takes the place of the person; everything else runs as it stands.
			script := "set -eu\numask 022\nSUDO_USER=ops\nphase() { echo \"$*\"; }\ngetent() { [ \"$*\" = 'passwd ops' ] && echo \"ops:x:1000:1000::" + home + ":/bin/sh\"; }\n" +
				"runuser() { [ \"$1 $2 $3\" = '-u ops --' ] || exit 9; shift 3; \"$@\"; }\n" + strings.ReplaceAll(kubeconfigSteps, "/etc/kubernetes/admin.conf", admin)
			out, err := exec.Command("sh", "-c", script).CombinedOutput()
			if err != nil || !strings.Contains(string(out), c.say) || c.say == "" && len(out) > 0 {
				t.Errorf("%v\n%s\nwant %q", err, out, c.say)
			}
			file := filepath.Join(home, ".kube/config")
			got, _ := os.ReadFile(file)
			if string(got) != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v", info.Mode())
			}
		})
	}
}
