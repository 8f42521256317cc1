! One thread fills what all use: by calls of the C library, as the compiler makes them.
module grids
  implicit none
  real(8), allocatable :: grid(:,:), next(:,:)
contains
  subroutine fill(rows)
    integer, intent(in) :: rows
    allocate(grid(rows,0:65), next(rows,0:65))
    grid = 0d0 ! line: grid
    next = 0d0 ! line: next
  end subroutine
end module

program filled
  use grids
  implicit none
  integer :: i, j, k
  call fill(512)
  do k = 1, 8
    !$omp parallel do schedule(static) private(i)
    do j = 1, 64
      do i = 1, 512
        next(i,j) = 0.5d0 * (grid(i,j-1) + grid(i,j+1))
      end do
    end do
    !$omp parallel do schedule(static) private(i)
    do j = 1, 64
      do i = 1, 512
        grid(i,j) = next(i,j)
      end do
    end do
  end do
  print *, grid(1,2)
end program
