// Go: goroutines that keep their system threads, so that several live at once.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

func main() {
	var all sync.WaitGroup
	for i := 0; i < 5; i++ {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			time.Sleep(300 * time.Millisecond)
			all.Done()
		}()
	}
	all.Wait()
	fmt.Println(runtime.GOMAXPROCS(0), runtime.NumCPU())
}
