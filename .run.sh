ninja -C build -j2 2>&1 | grep -E "error|FAILED" ; tests/machine/boot --build build ${V:-12} bash ./$1 2>&1 | grep -v "guarantee\|sandbox.req\|errandd:  "
