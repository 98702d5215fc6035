package doctor

// Level is how grave a finding is.
type Level string

// The levels of a finding.
const (
	LevelOK      Level = "ok"
	LevelWarning Level = "warning"
	LevelError   Level = "error"
)

// Finding is one line of `autoscaler-agent check`.
type Finding struct {
	Level  Level  `json:"level"`
	About  string `json:"about"` // "configuration", "kubeconfig", "rights", "cloud", "group NAME", ...
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}
