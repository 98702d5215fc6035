// Package config is everything that an operator may set: the variables AUTOSCALER_* of the
// environment, each declared as a field beside the code that reads it, and the sections of
// groups.yaml. A field's tags are its name, its default and its range; the example file, the
// check for misspelt names and the errors come from them.
//
// It refuses a configuration that it does not understand whole: a variable that nobody
// reads, a value of another type, a value out of range. Each error names the variable and
// the remedy, and all of them are told at once.
package config

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/autoscaler-agent/autoscaler-agent/agent/decision"
	"github.com/autoscaler-agent/autoscaler-agent/agent/election"
	"github.com/autoscaler-agent/autoscaler-agent/agent/observe"
	"github.com/autoscaler-agent/autoscaler-agent/internal/bootid"
)

// Config is everything that an operator may set, each part declared beside the code
// that reads it. Load fills it from AUTOSCALER_* variables.
type Config struct {
	// Provider names the cloud, or several with commas between them.
	Provider string `default:"asg" form:"providers" desc:"The cloud: asg (AWS), nova, magnum, clusterapi or externalgrpc; several are separated by commas."`
	// Kubeconfig is the path of the kubeconfig; see KubeconfigPath for what stands in.
	Kubeconfig string `form:"file" desc:"Path of the kubeconfig; empty: KUBECONFIG, then /etc/autoscaler-agent/kubeconfig."`
	// StateDir holds state.json, which a restart reads.
	StateDir string `split_words:"true" default:"/var/lib/autoscaler-agent" form:"directory" desc:"Directory of what a restart has to remember."`
	// GroupsFile is groups.yaml: prices, pauses, headroom and more; see package groups.
	GroupsFile string `split_words:"true" default:"/etc/autoscaler-agent/groups.yaml" form:"file" desc:"Path of groups.yaml: prices, pauses, headroom and more of single node groups."`
	// Prices says which prices of groups count; see groups.PricesComputed.
	Prices string `default:"computed" oneof:"computed,told,typed" desc:"Which prices of node groups count: typed (in groups.yaml), told (by the cloud too), computed (from the machine's size too)."`
	// Socket is the local API's unix socket; "off" for none.
	Socket string `default:"/run/autoscaler-agent/agent.sock" form:"socket" desc:"Unix socket on which status and explain ask the running agent; off for none."`
	// Listen is the address of metrics and health; "off" for none.
	Listen string `default:"127.0.0.1:8085" form:"listen or off" desc:"Address of metrics and health; off for none."`
	// ListenPage serves the page beside the metrics. A reader of the page learns the names of
	// pods and nodes.
	ListenPage bool   `split_words:"true" default:"false" desc:"Serve the page under /page beside the metrics; who reaches the address reads names of pods and nodes."`
	LogLevel   string `split_words:"true" default:"info" oneof:"debug,info,warn,error" desc:"Least level of the journal: debug, info, warn or error."`
	// NodeName is this machine's name in the Lease; empty: its host name.
	NodeName string `split_words:"true" form:"name" desc:"Name of this machine in the Lease; empty: its host name."`

	// EnvFile is the environment file that the settings came from; empty: EnvFile.
	EnvFile string `ignored:"true"`
	// Transport and Dial, when set, carry the requests to the API server and open other connections to it in place of the
	// network: a simulation plays both ends in one process. Its clouds have their own (asg.Config.Transport).
	Transport http.RoundTripper                                                    `ignored:"true"`
	Dial      func(ctx context.Context, network, address string) (net.Conn, error) `ignored:"true"`
	// groupsNamed: an operator named GroupsFile, so that it has to be there.
	groupsNamed bool

	Lease   election.Config
	Scaler  Scaler
	Scaling decision.Policy
	Observe observe.Config
	Kubelet Kubelet

	Services
}

// Scaler is the scaler service's own.
type Scaler struct {
	Enabled bool `default:"true" desc:"Whether machines are started and ended at all."`
	// DryRun decides and logs, and changes nothing.
	DryRun bool `split_words:"true" default:"false" desc:"Decide and log only; nothing is changed."`
	// StatusConfigMap keeps Cluster Autoscaler's status page in the ConfigMap
	// kube-system/cluster-autoscaler-status.
	StatusConfigMap bool `split_words:"true" default:"true" desc:"Whether Cluster Autoscaler's status page is kept in the ConfigMap kube-system/cluster-autoscaler-status."`
	// Quiet is how long the world must be silent before a round that something urgent
	// asked for; Cap is the longest that such a round waits from the first event.
	Quiet time.Duration `default:"200ms" range:"0s..1m" desc:"How long the cluster must be silent before an urgent round (an unschedulable pod) starts."`
	Cap   time.Duration `default:"800ms" range:"0s..10m" desc:"Longest wait for that silence, from the first event."`
	// Calm is how long a round waits that nothing urgent asked for.
	Calm time.Duration `default:"2s" range:"0s..10m" desc:"How long a round waits that nothing urgent asked for."`
	// Idle is the longest time without a round.
	Idle time.Duration `default:"30s" range:"1s..1h" desc:"Longest time without a round."`
}

// Load reads and checks the configuration from the process's environment. The error
// joins everything that is wrong, each naming its variable and the remedy.
func Load() (Config, error) {
	var c Config
	err := process(&c)
	c.groupsNamed = os.Getenv(groupsVariable) != ""
	c.Bootstrap.TokenGroups = c.JoinGroups() // they go by the mode of the join
	swallowed, open := unclosed(os.Environ())
	err = errors.Join(err, unknown(os.Environ()), proxies(), c.Validate())
	return c, errors.Join(open, without(err, swallowed))
}

// LoadWith reads the environment file, as LoadEnvFile does, and then loads. The mistakes of
// both are told at once; a file that cannot be read whole is the only one told, because the
// settings without it are not those that the operator wrote.
func LoadWith(envFile string) (Config, error) {
	faults, meant, err := loadEnvFile(envFile)
	if err != nil {
		return Config{}, err
	}
	c, err := Load()
	c.EnvFile = envFile
	return c, errors.Join(faults, without(err, meant))
}

// without leaves out of err what is said of the variables names: a line of the environment file
// is their mistake, and is told.
func without(err error, names []string) error {
	var rest []error
	for _, e := range Flatten(err) {
		if !slices.ContainsFunc(names, func(name string) bool { return wordIn(e.Error(), name) }) {
			rest = append(rest, e)
		}
	}
	return errors.Join(rest...)
}

// wordIn tells whether name stands in text, and not as the start or the end of a longer name.
func wordIn(text, name string) bool {
	part := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for before, after, found := strings.Cut(text, name); found; before, after, found = strings.Cut(after, name) {
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !part(last) && !part(next) {
			return true
		}
	}
	return false
}

// unclosed finds values that run over the end of their line, and values with other characters
// that no setting has. Told are its own variables, and those that such a value swallowed.
func unclosed(environ []string) (told []string, err error) {
	var errs []error
	for _, kv := range environ {
		name, value, _ := strings.Cut(kv, "=")
		before := len(errs)
		switch {
		case !strings.HasPrefix(name, Prefix+"_"):
		case strings.ContainsAny(value, "\r\n"):
			errs = append(errs, fmt.Errorf("%s holds a line break: close the quote that opens its value in the environment file", name))
			for _, v := range Variables() {
				if wordIn(value, v.Name) {
					told = append(told, v.Name)
				}
			}
		case strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }):
			errs = append(errs, fmt.Errorf("%s holds a control character: write printable characters only", name))
		case !utf8.ValidString(value):
			errs = append(errs, fmt.Errorf("%s is not UTF-8: write it in UTF-8", name))
		}
		if len(errs) > before {
			told = append(told, name)
		}
	}
	return told, errors.Join(errs...)
}

// KubeconfigPath is the kubeconfig to use: the configured one, KUBECONFIG, the
// agent's own; and, for commands that a person types, kubeadm's admin.conf last.
func (c Config) KubeconfigPath(typed bool) (string, error) {
	if c.Kubeconfig != "" {
		return c.Kubeconfig, nil
	}
	if p := os.Getenv("KUBECONFIG"); p != "" {
		return p, nil
	}
	candidates := []string{"/etc/autoscaler-agent/kubeconfig"}
	if typed {
		candidates = append(candidates, "/etc/kubernetes/admin.conf")
	}
	for _, p := range candidates {
		if _, err := os.Stat(p); err == nil {
			return p, nil
		}
	}
	return "", fmt.Errorf("no kubeconfig: set %s_KUBECONFIG to the path of one (looked for KUBECONFIG and %s)", Prefix, strings.Join(candidates, ", "))
}

// checkStateDir refuses a state directory that is something else. One that is missing, or not
// writable now, is no wrong configuration: systemd makes it, and the agent says what it cannot keep.
func (c Config) checkStateDir() error {
	st, err := os.Stat(c.StateDir)
	if errors.Is(err, syscall.ENOTDIR) || errors.Is(err, syscall.ELOOP) || err == nil && !st.IsDir() {
		return fmt.Errorf("%s_STATE_DIR is %q: that is no directory: set it to one, for example /var/lib/autoscaler-agent", Prefix, c.StateDir)
	}
	return nil
}

// CheckFiles finds the mistakes in what the configuration names on this machine: the state
// directory, groups.yaml, and files that are something else. Load tells those of the names themselves.
func (c Config) CheckFiles() error {
	if c.StateDir == "" {
		return nil // nothing was loaded
	}
	err := errors.Join(c.checkStateDir(), c.WrongFiles())
	if filepath.IsAbs(c.GroupsFile) {
		_, bad := c.ReadGroupsFile()
		err = errors.Join(err, bad)
	}
	return err
}

// WrongFiles names the settings that want a file and name a directory. groups.yaml is read, which tells more.
func (c Config) WrongFiles() error {
	var errs []error
	for _, v := range Variables() {
		path := reflect.ValueOf(c).FieldByIndex(v.field)
		if v.tag.Get("form") != "file" || v.Name == groupsVariable {
			continue
		}
		if st, err := os.Stat(path.String()); err == nil && st.IsDir() {
			errs = append(errs, fmt.Errorf("%s is %q, which is a directory: write the path of a file", v.Name, path))
		}
	}
	return errors.Join(errs...)
}

const groupsVariable = Prefix + "_GROUPS_FILE"

// Identity is the name of the Node that the agent runs on.
func (c Config) Identity() (string, error) {
	if c.NodeName != "" {
		return c.NodeName, nil
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("read host name: %w (set %s_NODE_NAME)", err, Prefix)
	}
	return host, nil
}

// LockFile is the file in StateDir that the running agent locks (agent/statefile.Lock).
const LockFile = "lock"

// Instance tells agents of one name apart, and is the same after a restart of the process: it is made of the boot of this machine and
// of LockFile. A copied configuration, disk or state directory does not carry it to another machine. Empty: either cannot be read.
func (c Config) Instance() string {
	boot := bootid.Read()
	st, err := os.Stat(filepath.Join(c.StateDir, LockFile))
	if boot == "" || err != nil {
		return ""
	}
	file, _ := st.Sys().(*syscall.Stat_t)
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", boot, file.Dev, file.Ino))
	return hex.EncodeToString(sum[:4])
}
