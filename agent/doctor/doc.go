// Package doctor answers `autoscaler-agent check`: is everything here that the agent needs?
// It tries the configuration, the directories, groups.yaml, the API server with every right
// of the agent's and with those that a thief of its credential must not have, the join, the
// leader (its name, its endpoint, the controller manager's flags, the agent's certificate), the
// cloud and each node group. A Finding is one line of the answer, with its remedy.
//
// It refuses to change anything: its writes to the API server are dry runs, and the
// empty file that shows whether a directory is writable is removed at once.
package doctor
