// Go: goroutines that keep their system threads, so that several live at once.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// As live.h has it.
func live() {
	folder := os.Getenv("LIVE_UNTIL")
	if folder == "" {
		time.Sleep(300 * time.Millisecond)
		return
	}
	seen := fmt.Sprintf("%s/%d", folder, syscall.Gettid())
	for _, err := os.Stat(seen); err != nil; _, err = os.Stat(seen) {
		time.Sleep(10 * time.Millisecond)
	}
}

func main() {
	var all sync.WaitGroup
	for i := 0; i < 5; i++ {
		all.Add(1)
		go func() {
			runtime.LockOSThread()
			syscall.Read(0, make([]byte, 1)) // until the input ends
			live()
			all.Done()
		}()
	}
	all.Wait()
	fmt.Println(runtime.GOMAXPROCS(0), runtime.NumCPU())
}
