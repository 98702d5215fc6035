// Package console reads in a machine's console how far its user data came: the marks that it
// writes there ("autoscaler-agent: phase=NAME key=value"), and what is likely to be wrong.
//
// It refuses to repeat anything of a console but those marks: whoever is root on the machine
// writes there what he likes, and secrets may stand beside them.
package console
