package plan

func (w *world) resume()    {}
func (w *world) scaleDown() {}
