// Package install puts the agent on a control-plane machine and takes it off again: the
// user, the directories, the unit, the manifests, the agent's own kubeconfig and the
// environment file, and publishes the settings for the next leader. The work is a list of steps: everything is looked at before the first
// step changes anything, and a step that finds its work done does nothing.
//
// It refuses to change a setting that an operator wrote, to start the agent, and to touch a
// file or an object that is not the agent's own.
package install
